"""ChatTTS: the streaming synthesizer for a GPU. Its weights are the operator's to download; see docs/gpu.md."""
