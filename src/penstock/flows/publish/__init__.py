"""Operations that publish messages, one file for each system; importing them adds them to the table."""
