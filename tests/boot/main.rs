//! Tests that boot a machine and check how it ended and what it told.
