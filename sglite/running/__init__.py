"""Runs of programs: one or many rows, their events, results, journals, deadlines and replays."""
