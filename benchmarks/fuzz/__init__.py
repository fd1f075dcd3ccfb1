"""No attack may land below a certificate, at any scale: random networks against attacks and exact arithmetic."""
