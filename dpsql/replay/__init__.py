"""What was once paid for is kept: the key of a measurement, and the bytes in which its release is stored."""
