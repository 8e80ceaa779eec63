"""Tools for models: declared from functions, asked for in the format of a model, called."""
