//! Tokens as they must not be.
