"""Asking a cluster about itself, and changing it: one file for each subject, and `Admin` over them."""
