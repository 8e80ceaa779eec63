"""Programs as graphs: made from the source, optimised, run, written as JSON and drawn."""
