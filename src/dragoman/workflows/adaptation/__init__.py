"""A model is adapted to a user's own text: fine-tuned on it, kept from forgetting, and compared."""
