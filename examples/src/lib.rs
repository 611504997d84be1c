//! The programs are in the files beside this folder; see the README.
