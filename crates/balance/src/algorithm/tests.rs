//! Tests of the algorithms.
