"""Wong's excavator (1991, chapter 5): a rotary drive in every joint."""
