//! The backend trait and the lowering of frameworks, for every vendor.
