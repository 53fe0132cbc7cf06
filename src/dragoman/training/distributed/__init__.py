"""A model is trained on several devices or machines."""
