"""The life of a flow: admission, planning, installation, changes and its end."""
