"""Grammars in a subset of the format of Lark: read, resolved, lowered to the native builder."""
