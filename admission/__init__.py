"""May this work start? Answers Permit or Refusal from counts and measurements. Knows no sockets and no engines."""
