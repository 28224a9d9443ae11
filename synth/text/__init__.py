"""What is done to text before an engine sees it: cutting it into segments, and blanking what cannot be spoken."""
