"""PrivCI: structure selection under a conditional-independence constraint (arXiv 2603.12112)."""
