"""Tests of combined features, as a package so that its module names do not hide equal names in tests/."""
