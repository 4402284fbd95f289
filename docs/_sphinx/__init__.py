"""What builds the site: pages of the repository laid out for Sphinx, generated pages, and how links are resolved."""
