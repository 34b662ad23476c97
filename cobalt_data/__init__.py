"""Problems, engines, collection, cutting, perturbation, duplicates, splits, versions and the Hub. Knows `sandbox`, never
`cobalt_train`. Import from the modules: this package imports nothing by itself, so that the command line starts at once.
"""
