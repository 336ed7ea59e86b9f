"""The texts of the pages that run a kernel (make page): page.md of each lesson, in English and by
labs/page/locale in Chinese. build.py asks Sphinx for their bodies and puts them into template.html.
"""

project = "Apprentice"
language = "en"
extensions = ["myst_parser"]
include_patterns = ["lesson*/page.md", "storage/page.md"]
smartquotes = False
locale_dirs = ["page/locale"]
gettext_compact = False
html_permalinks = False
suppress_warnings = ["toc.not_included"]  # each page stands alone
