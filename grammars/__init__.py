"""Constraints: JSON Schema, regex and grammar text, compiled to automata that mask tokens."""
