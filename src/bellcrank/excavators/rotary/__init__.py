"""Wong's excavator (1991, chapter 5) with a rotary drive in every joint."""
