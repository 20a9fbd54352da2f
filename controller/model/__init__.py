"""What the other layers speak in: rules, messages, events, requests and settings, as data."""
