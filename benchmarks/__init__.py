"""What is timed: ratios against a baseline in the same run, never asserted by a test."""
