"""Files of images, masks and scans, and the codes that stand for classes in them."""
