"""A whole game moved from one database to another: `evennia-ai move`.

`moving` has the steps in their order; `tables` what is copied and how a row is read and written,
`progress` how far it is, `loose` what does not hold while rows are on their way, `comparing`
whether both are alike.
"""
