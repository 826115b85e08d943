"""Jobs between machines: what each role reads, starts and leaves."""
