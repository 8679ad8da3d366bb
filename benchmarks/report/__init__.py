"""From records to Markdown and pictures: tables, peers, what README and RESULTS.md say."""
