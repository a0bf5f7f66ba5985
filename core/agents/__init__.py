"""The product for agents: a server of the Model Context Protocol whose tools are sections and commands."""
