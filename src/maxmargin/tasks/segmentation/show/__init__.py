"""Pictures of labels, and the report: one self-contained page for the browser."""

from maxmargin.tasks.segmentation.show.cases import Case, image_case, scan_case
from maxmargin.tasks.segmentation.show.overlay import class_colors, default_colors, overlay
from maxmargin.tasks.segmentation.show.page import page

__all__ = ["Case", "class_colors", "default_colors", "image_case", "overlay", "page", "scan_case"]
