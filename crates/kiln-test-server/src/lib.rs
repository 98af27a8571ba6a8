//! A local package index for tests, with faults on request.
