"""From text to PCM: segmenter, scheduler, engines, their processes. Knows no client sockets, no JSON, no sessions."""
