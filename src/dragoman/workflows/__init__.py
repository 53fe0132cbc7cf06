"""Long work in stages that can be stopped and taken up again."""
