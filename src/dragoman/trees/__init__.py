"""Here constituency trees are read, cleaned, written as sequences of actions, drawn and scored."""
