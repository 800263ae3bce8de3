"""What layers in 8 bits are made of, and with."""
