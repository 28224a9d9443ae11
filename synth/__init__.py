"""From text to PCM: segmenter, scheduler, engines and the processes they run in. Knows no sockets of clients, no JSON, no sessions."""
