"""Numeric code: `cpu/` (C++), `reference/` (plain definitions, the oracle of the tests)."""
