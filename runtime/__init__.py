"""Engines: sequences, scheduler, prefix cache, sampling, output, backends, models."""
