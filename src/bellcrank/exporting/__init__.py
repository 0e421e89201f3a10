"""Export of models: C packages, FMUs, CasADi functions, WebAssembly and web pages. `bc.export` is in export.py."""
