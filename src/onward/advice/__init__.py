"""What messages advise: the word that was meant, the option as the user writes it, the package to install."""
