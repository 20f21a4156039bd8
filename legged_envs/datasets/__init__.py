"""Files of recorded episodes."""
