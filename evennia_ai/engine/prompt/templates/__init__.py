"""Templates: macros, logic with its allowed syntax, compiling, and rendering.

`macros` finds macros with arguments, and `chunks` has what each of them does. `value_names` and
`clock` have the plain names, such as `{{char}}` and `{{time}}`. `syntax` lists the allowed Jinja,
and `logic` renders it. Other code calls `template`.
"""
