"""Parties on other machines: keys, messages, the shuffler, and the two ends of a round.

Needs the extra `tacit[federation]`; nothing below imports it.
"""
