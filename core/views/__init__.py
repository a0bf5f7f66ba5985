"""One module per page: store in, plain tables and Plotly figures out; no Streamlit."""
