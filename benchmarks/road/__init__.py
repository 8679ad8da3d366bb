"""From a user's data to the answer: what eager calls take beside the computation itself."""
