"""sglite: structured generation in one package."""
