"""Recurrent layers that frameworks write as loops: read from what a round computes, and written as one node."""
