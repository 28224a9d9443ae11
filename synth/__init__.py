"""From text to PCM: segmenter, scheduler, engines and their processes. Knows no client sockets, no JSON, no sessions."""
