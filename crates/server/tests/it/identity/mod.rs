//! Who is who, and until when: tokens of issuers, and everything that ends access.

mod ended;
mod tokens;
