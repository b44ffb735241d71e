"""The program's version, written into every manifest."""

VERSION = "0.1.0"
