"""The documentation site: `make docs` writes it to build/docs, and nothing in it is loaded from elsewhere."""

project = "Multi-Stream TCP and globally optimal multipath routing"
html_title = "MSTCP and GOMR"
copyright = "the authors"  # noqa: A001 (Sphinx's name)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_inline"]
suppress_warnings = ["misc.highlighting_failure"]  # prompts of Mininet and abridged JSON are no language

napoleon_custom_sections = [("Options", "params_style")]

autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
add_module_names = False

html_theme = "furo"
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
